// Package overlap is the overlapping paths of a routine (Tallam, Zhang and Gupta 2004): an acyclic
// path, and how execution goes on behind the back edge, call or return that ends it, up to some
// predicates. From how often these run, package query/bounds bounds how often one whole path
// follows another.
//
// A predicate is a block with two or more successors. An overlapping path of degree k ends at the
// k+1st predicate behind the back edge, call or return. The end of a path counts as one, and so
// does the end of its part within the loop, behind a back edge. What an overlapping path adds to
// its first path is an Extension: numbers of extensions are those of the overlapping graph of
// section 2.3.
//
// The package numbers extensions by block and by how many predicates are left. So an edge that is
// possibly instrumented, which the paper tells by a counter at run time, has a number for each
// count of predicates before it: each number is an extension that can run.
package overlap
