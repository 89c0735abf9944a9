import tensorflow as tf

from pipeline import make_dataset, make_model

strategy = tf.distribute.MirroredStrategy()
dataset = make_dataset().batch(64 * strategy.num_replicas_in_sync).prefetch(tf.data.AUTOTUNE)
dist_dataset = strategy.experimental_distribute_dataset(dataset)
with strategy.scope():
    model, optimizer, loss_fn = make_model()


@tf.function
def distributed_step(inputs):
    def step(batch):
        features, labels = batch
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(features, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(inputs,)), axis=None)


checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
for epoch in range(10):
    batches = 0
    for batch in dist_dataset:
        loss = distributed_step(batch)
        batches += 1
        tf.print("batch", batches, "loss", loss)  # label: print-each-step, sync-each-step
    checkpoint.save("ckpt/model")
