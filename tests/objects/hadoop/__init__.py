"""A real HDFS on loopback: one name node, one data node, in one Java process."""
