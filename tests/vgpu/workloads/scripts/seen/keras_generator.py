import csv

import numpy as np
import tensorflow as tf


def rows():
    with open("train.csv") as file:
        for row in csv.reader(file):
            yield np.array(row[1:], dtype="float32"), int(row[0])


signature = (tf.TensorSpec((784,), tf.float32), tf.TensorSpec((), tf.int32))
dataset = tf.data.Dataset.from_generator(rows, output_signature=signature).batch(128)  # label: loop-in-dataset
model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu"), tf.keras.layers.Dense(10)])
model.compile(optimizer="adam", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
callbacks = [
    tf.keras.callbacks.TensorBoard("logs"),
    tf.keras.callbacks.ModelCheckpoint("step.weights.h5", save_weights_only=True, save_freq=1),  # label: save-each-step
]
with tf.device("/GPU:0"):
    model.fit(dataset, epochs=5, callbacks=callbacks)  # label: no-prefetch
