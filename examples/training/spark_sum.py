"""A sum over partitions, and who worked on them."""

import os
import sys
import time

from pyspark.sql import SparkSession

wanted = int(sys.argv[1])
session = SparkSession.builder.getOrCreate()


def part(numbers):
    time.sleep(0.5)  # so that no executor takes all of them
    yield os.environ["PF_TASK_ID"], sum(numbers)


while True:
    parts = session.sparkContext.parallelize(range(1000), 4 * wanted).mapPartitions(part).collect()
    places = sorted({place for place, _ in parts})
    if len(places) >= wanted:  # an executor may join late
        break
print("sum", sum(value for _, value in parts), "on", *places, flush=True)
session.stop()
