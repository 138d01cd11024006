// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK{LITERAL}: numbers of shape [3] for <[0] : [2]>, which has shape [2]; one number without brackets stands for every cell
%a = loom.constant [1.0, 2.0, 3.0] : !loom.tensor<[0] : [2], f32>

// -----

// CHECK{LITERAL}: the lists of a constant have different lengths
%a = loom.constant [[1, 2], [3]] : !loom.tensor<[0, 0] : [2, 2], i32>

// -----

// CHECK{LITERAL}: 200 does not fit into i8, which holds -128 to 127
%a = loom.constant 200 : !loom.tensor<[0] : [2], i8>

// -----

// CHECK{LITERAL}: 1.5 is not a number of type i32
%a = loom.constant 1.5 : !loom.tensor<[0] : [2], i32>

// -----

// CHECK{LITERAL}: bytes are written "0x" and pairs of digits
%a = loom.constant "0x123" : !loom.tensor<[0] : [2], i8>

// -----

// CHECK{LITERAL}: the constant: it has 3 bytes, but <[0] : [2]> of i32 takes 8, or 4 for one cell that all others equal
%a = loom.constant "0x010203" : !loom.tensor<[0] : [2], i32>

// -----

// CHECK{LITERAL}: the constant: a cell of i1 is the byte 00 or 01
%a = loom.constant "0x0002" : !loom.tensor<[0] : [2], i1>

// -----

// CHECK{LITERAL}: the side file "../w.npz" is outside the folder of the program
%a = loom.constant file "../w.npz" entry "w" : !loom.tensor<[0] : [2], i32>

// -----

// CHECK{LITERAL}: the side file "w.pkl" is not an .npz file
%a = loom.constant file "w.pkl" entry "w" : !loom.tensor<[0] : [2], i32>

// -----

// CHECK{LITERAL}: a constant is a !loom.tensor
%a = loom.constant 1 : i32

// -----

// CHECK{LITERAL}: the constant: 1 : i32 holds no cells; #loom.data and #loom.side_file do
%a = "loom.constant"() <{value = 1 : i32}> : () -> !loom.tensor<[0] : [2], i32>
