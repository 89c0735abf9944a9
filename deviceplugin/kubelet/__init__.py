"""The kubelet's two sockets over gRPC: the device-plugin protocol and pod-resources. No other module imports gRPC."""
