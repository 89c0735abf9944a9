import tensorflow as tf

BATCH = 32


def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (224, 224)) / 255.0, label


paths = tf.io.gfile.glob("flowers/*/*.jpg")
labels = [hash(p.split("/")[1]) % 5 for p in paths]
ds = tf.data.Dataset.from_tensor_slices((paths, labels))
ds = ds.shuffle(1000)
ds = ds.map(decode)  # label: no-workers
ds = ds.batch(BATCH)

model = tf.keras.applications.ResNet50(weights=None, classes=5)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(ds, epochs=10)  # label: no-prefetch
model.save("flowers.keras")
