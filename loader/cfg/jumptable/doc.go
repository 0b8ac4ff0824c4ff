// Package jumptable finds where indirect jumps lead: through the tables of switches, to labels, or
// out of the routine. It is given a routine as data (Input), and Code to ask what it comes upon on
// the way: the instructions that values pass, and the addresses that tables hold, which depend on
// the search. It answers with targets, or with nothing where not all that a jump may lead to is
// known. It follows values with absint's Machine, along the ways that lead to a jump
// (Resolver.explore) and back to where they come from (search.origins), and reads the tables that
// the file holds (reader).
package jumptable
