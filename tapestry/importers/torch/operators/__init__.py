"""What each operator of PyTorch becomes; every module here fills the table of `registry`."""
