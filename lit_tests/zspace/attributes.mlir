// RUN: tapestry-opt %s | filecheck %s
// RUN: tapestry-opt %s --print-op-generic | tapestry-opt | filecheck %s

// CHECK: "test.op"() {r = #zspace.range<[0, -1] : [10, 12]>} : () -> ()
"test.op"() {r = #zspace.range<[0,-1]:[10,12]>} : () -> ()
// CHECK-NEXT: "test.op"() {r = #zspace.range<[] : []>} : () -> ()
"test.op"() {r = #zspace.range<[] : []>} : () -> ()

// The box of one cell is left out, names become d0, d1, and terms are collected.
// CHECK-NEXT: "test.op"() {p = #zspace.projection<(d0, d1) -> (d0, 0) :> [1, 5]>} : () -> ()
"test.op"() {p = #zspace.projection<(d0, d1) -> (d0, 0) :> [1, 5]>} : () -> ()
// CHECK-NEXT: "test.op"() {p = #zspace.projection<(d0, d1) -> (2 * d0 - d1 + 3, -d1)>} : () -> ()
"test.op"() {p = #zspace.projection<(i, j) -> (3 + i * 2 - j, j * -1) :> [1, 1]>} : () -> ()
// CHECK-NEXT: "test.op"() {p = #zspace.projection<() -> ()>} : () -> ()
"test.op"() {p = #zspace.projection<() -> ()>} : () -> ()
// CHECK-NEXT: "test.op"() {p = #zspace.projection<(d0) -> ()>} : () -> ()
"test.op"() {p = #zspace.projection<(row) -> ()>} : () -> ()

// CHECK-NEXT{LITERAL}: "test.op"() {s = #zspace.partition<grid [[0, 5, 10], [0, 12]]>} : () -> ()
"test.op"() {s = #zspace.partition<grid [[0, 5, 10], [0, 12]]>} : () -> ()
// CHECK-NEXT{LITERAL}: "test.op"() {s = #zspace.partition<ranges [[0, 0] : [5, 12], [5, 0] : [10, 12]]>} : () -> ()
"test.op"() {s = #zspace.partition<ranges [[0, 0] : [5, 12], [5, 0] : [10, 12]]>} : () -> ()

// Both sides of an inequality go to the left.
// CHECK-NEXT: "test.op"() {d = #zspace.domain<(d0, d1) : d0 - d1 >= 0, -d0 + d1 + 2 >= 0>} : () -> ()
"test.op"() {d = #zspace.domain<(i, j) : i >= j, 2 + j >= i>} : () -> ()
// CHECK-NEXT: "test.op"() {d = #zspace.domain<() : -1 >= 0>} : () -> ()
"test.op"() {d = #zspace.domain<() : 0 >= 1>} : () -> ()
