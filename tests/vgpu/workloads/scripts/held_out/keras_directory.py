from tensorflow import keras
from tensorflow.keras import layers

train = keras.utils.image_dataset_from_directory("cats_dogs/train", image_size=(180, 180), batch_size=32)
valid = keras.utils.image_dataset_from_directory("cats_dogs/valid", image_size=(180, 180), batch_size=32)

model = keras.Sequential(
    [
        layers.Rescaling(1 / 255),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(loss="binary_crossentropy", optimizer="rmsprop", metrics=["accuracy"])
callbacks = [keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True, monitor="val_loss")]
history = model.fit(train, epochs=30, validation_data=valid, callbacks=callbacks)
