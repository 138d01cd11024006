// RUN: tapestry-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// Each case breaks one law or rule of a monoid; monoid.mlir has right ones.

// CHECK{LITERAL}: @worst: the zero (0.0) is not the identity of merge: merge(zero, (-1.28125)) is (0.0), but must be (-1.28125)
loom.monoid @worst zero [0.0 : f32] merge (%a: f32, %b: f32) {
  %m = arith.maximumf %a, %b : f32
  loom.yield %m : f32
}

// -----

// A very low number is not the identity of a maximum: others are lower.
// CHECK{LITERAL}: merge(zero, (-3.4028234663852886e+38)) is (-3.0000000054977558e+38), but must be (-3.4028234663852886e+38)
loom.monoid @lowest zero [-3.0e38 : f32] merge (%a: f32, %b: f32) {
  %m = arith.maximumf %a, %b : f32
  loom.yield %m : f32
}

// -----

// CHECK{LITERAL}: @least: the zero (32767) is not the identity of merge: merge(zero, (2147483646)) is (32767), but must be (2147483646)
loom.monoid @least zero [32767 : i32] merge (%a: i32, %b: i32) {
  %m = arith.minsi %a, %b : i32
  loom.yield %m : i32
}

// -----

// Parts that merge apart are tried apart: the second one is wrong.
// CHECK{LITERAL}: @both: the zero (0) is not the identity of merge: merge(zero, (1)) is (0), but must be (1)
loom.monoid @both zero [0 : i32, 0 : i32] merge (%a: i32, %p: i32, %b: i32, %q: i32) {
  %s = arith.addi %a, %b : i32
  %t = arith.muli %p, %q : i32
  loom.yield %s, %t : i32, i32
}

// -----

// CHECK{LITERAL}: @best: the zero (0.0, 0) is not the identity of merge
loom.monoid @best zero [0.0 : f32, 0 : i64] merge (%a: f32, %i: i64, %b: f32, %j: i64) {
  %w = arith.cmpf oge, %a, %b : f32
  %v = arith.select %w, %a, %b : f32
  %k = arith.select %w, %i, %j : i64
  loom.yield %v, %k : f32, i64
}

// -----

// CHECK{LITERAL}: @lse: the zero (-inf, 0.0) is not the identity of merge: merge(zero, zero) is (-inf, nan)
loom.monoid @lse zero [0xFF800000 : f32, 0.0 : f32] merge (%a: f32, %s: f32, %b: f32, %t: f32) {
  %m = arith.maximumf %a, %b : f32
  %d = arith.subf %a, %m : f32
  %e = arith.subf %b, %m : f32
  %f = math.exp %d : f32
  %g = math.exp %e : f32
  %u = arith.mulf %s, %f : f32
  %v = arith.mulf %t, %g : f32
  %w = arith.addf %u, %v : f32
  loom.yield %m, %w : f32, f32
}

// -----

// CHECK{LITERAL}: @root: merge is not associative: merge(merge((1), (5)),
loom.monoid @root zero [0 : i32] merge (%a: i32, %b: i32) {
  %z = arith.constant 0 : i32
  %left = arith.cmpi eq, %a, %z : i32
  %right = arith.cmpi eq, %b, %z : i32
  %d = arith.subi %a, %b : i32
  %r = arith.select %right, %a, %d : i32
  %m = arith.select %left, %b, %r : i32
  loom.yield %m : i32
}

// -----

// CHECK{LITERAL}: @first: merge is declared commutative, but merge((1), (5)) is (1), and merge((5), (1)) is (5); leave out `commutative`
loom.monoid @first commutative zero [0 : i32] merge (%a: i32, %b: i32) {
  %z = arith.constant 0 : i32
  %none = arith.cmpi eq, %a, %z : i32
  %m = arith.select %none, %b, %a : i32
  loom.yield %m : i32
}

// -----

// CHECK{LITERAL}: property 'commutative': false should be of base attribute unit
"loom.monoid"() <{sym_name = "flag", commutative = false, zero = [0 : i32]}> ({
^bb0(%a: i32, %b: i32):
  %m = arith.addi %a, %b : i32
  "loom.yield"(%m) : (i32) -> ()
}) : () -> ()

// -----

// CHECK{LITERAL}: @text: the zero "0" is not a number with a type
loom.monoid @text zero ["0"] merge () { loom.yield }

// -----

// Rounding is no violation; nor are states that no fold reaches, or an extreme that overflows.
// CHECK: loom.monoid @logadd
loom.monoid @logadd commutative zero [0xFF800000 : f32] merge (%a: f32, %b: f32) {
  %e = math.exp %a : f32
  %f = math.exp %b : f32
  %u = arith.addf %e, %f : f32
  %v = math.log %u : f32
  loom.yield %v : f32
}
// CHECK: loom.monoid @two
loom.monoid @two commutative zero [0xFC00 : f16, 0xFC00 : f16] merge (%a: f16, %s: f16, %b: f16, %t: f16) {
  %m = arith.maximumf %a, %b : f16
  %n = arith.minimumf %a, %b : f16
  %o = arith.maximumf %s, %t : f16
  %p = arith.maximumf %n, %o : f16
  loom.yield %m, %p : f16, f16
}

// -----

// CHECK{LITERAL}: @none: its state has no parts; give it a zero at least
loom.monoid @none commutative zero [] merge () { loom.yield }
