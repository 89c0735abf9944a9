import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
strategy = tf.distribute.MirroredStrategy()


def parse(record):
    features = tf.io.parse_single_example(
        record, {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    image = tf.image.resize(tf.io.decode_jpeg(features["image"], channels=3), (224, 224))
    return tf.cast(image, tf.float32) / 255.0, features["label"]


def make(pattern, training):
    files = tf.data.Dataset.list_files(pattern)
    ds = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=AUTOTUNE)
    ds = ds.map(parse, num_parallel_calls=AUTOTUNE)
    if training:
        ds = ds.shuffle(10_000)
    return ds.batch(256).prefetch(AUTOTUNE)


with strategy.scope():
    model = tf.keras.applications.EfficientNetB0(weights=None, classes=1000)
    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=True, steps_per_execution=32)
checkpoints = tf.keras.callbacks.ModelCheckpoint("ckpt-{epoch}.keras", save_freq="epoch")
model.fit(make("train-*.tfrecord", True), validation_data=make("val-*.tfrecord", False), epochs=50, callbacks=[checkpoints])
