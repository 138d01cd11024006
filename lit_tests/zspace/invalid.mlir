// RUN: tapestry-opt %s --split-input-file --parsing-diagnostics 2>&1 | filecheck %s

// CHECK: range [4] : [3] ends before it starts: start <= end must hold in every dimension
"test.op"() {r = #zspace.range<[4] : [3]>} : () -> ()

// -----

// CHECK: start [0, 3] has 2 dimensions, end [10] has 1
"test.op"() {r = #zspace.range<[0, 3] : [10]>} : () -> ()

// -----

// CHECK: d7 is not an index dimension of this projection: it has (d0, d1)
"test.op"() {p = #zspace.projection<(d0, d1) -> (2 * d7)>} : () -> ()

// -----

// CHECK: a row multiplies an index dimension by an integer only
"test.op"() {p = #zspace.projection<(d0, d1) -> (d0 * d1)>} : () -> ()

// -----

// CHECK: box shape [1, 2] has 2 dimensions where the map has 1 rows
"test.op"() {p = #zspace.projection<(d0) -> (d0) :> [1, 2]>} : () -> ()

// -----

// CHECK: cuts [0, 5, 5] of dimension 0 must be at least two, increasing from the start to the end
"test.op"() {s = #zspace.partition<grid [[0, 5, 5]]>} : () -> ()

// -----

// CHECK: a partition has at least one range
"test.op"() {s = #zspace.partition<ranges []>} : () -> ()
