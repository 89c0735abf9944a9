"""An archive for a support case: what the cluster's parts say of themselves, without secrets."""
