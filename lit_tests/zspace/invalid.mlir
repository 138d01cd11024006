// RUN: tapestry-opt %s --split-input-file --parsing-diagnostics 2>&1 | filecheck %s

// CHECK: range [4] : [3] ends before it starts: start <= end must hold in every dimension
"test.op"() {r = #zspace.range<[4] : [3]>} : () -> ()

// -----

// CHECK: start [0, 3] has 2 dimensions, end [10] has 1
"test.op"() {r = #zspace.range<[0, 3] : [10]>} : () -> ()

// -----

// CHECK: d7 is not an index dimension here: they are (d0, d1)
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

// -----

// CHECK: i is not an index dimension here: they are (d0)
"test.op"() {s = #zspace.domain<(d0) : i >= 0>} : () -> ()

// -----

// CHECK: in a row of a domain, such as d0 - d1 >= 0
"test.op"() {s = #zspace.domain<(d0) : d0 > 0>} : () -> ()

// -----

// CHECK: or integer in a row
"test.op"() {s = #zspace.domain<(d0) : >} : () -> ()
