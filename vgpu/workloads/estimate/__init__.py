"""How much GPU memory a model needs for training or inference, from its files or from numbers; nothing is run.

plan           what a user asks: batch, sequence, types, optimizer, splits
readers/       files of models, which are hostile input: safetensors, config.json of transformers, ONNX
transformer, convolution, perceptron
the models: a list of stages, each with its parameters and what autograd keeps for it
memory         walks the stages through a step, and finds its peak
cards          cards with their memory, peak FLOP/s and bandwidth
report         all of it for a person, and for `-o json`
"""
