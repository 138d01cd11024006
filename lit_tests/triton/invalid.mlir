// RUN: not tapestry-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s
