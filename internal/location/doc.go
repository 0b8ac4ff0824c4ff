// Package location reads the expressions by which debug information says where a variable is
// (DWARF 5, section 2.5): it splits them into operations, and writes some. What they give is for
// others to say. It builds on any system.
package location
