// Package coding writes grammars in few bytes and reads them back: the body of each rule stands
// where the rule is first used, and each decision that this takes is predicted, in a small grammar
// by mixing contexts and in a large one by a single one, and coded arithmetically.
//
// It promises that Decode returns what Encode was given, with rules numbered in the order of their
// first use; that it takes time and memory in proportion to the symbols of the bodies, whatever
// they expand to; that Decode trusts nothing, and makes no rule that derives itself; and that the
// bytes are the same on every machine: there is no floating point in it. EncodePlain and
// DecodePlain are for grammars on which all this is lost: fast, their bytes those of a zstd
// encoder, whichever it is. It does not check that a file is whole (see wpp), and a change of any
// context or constant in it changes the format.
package coding
