import tensorflow as tf
import tensorflow_datasets as tfds

(train, test), info = tfds.load("fashion_mnist", split=["train", "test"], as_supervised=True, with_info=True)


def normalise(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


train = (
    train.map(normalise, num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
    .shuffle(info.splits["train"].num_examples)
    .batch(128)
    .prefetch(tf.data.AUTOTUNE)
)
test = test.map(normalise, num_parallel_calls=tf.data.AUTOTUNE).batch(128).cache().prefetch(tf.data.AUTOTUNE)
model = tf.keras.models.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(128, "relu"), tf.keras.layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(train, epochs=6, validation_data=test)
