"""Two workers of a MultiWorkerMirroredStrategy add up their numbers."""

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def total():
    def mine():
        return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group + 1, tf.float32)

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(mine), axis=None)


print(f"replicas {strategy.num_replicas_in_sync} sum {float(total()):g}", flush=True)
