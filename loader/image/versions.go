package image

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// IsGlibc reports whether an imported function of that name is the GNU C library's, by its version,
// as GLIBC_2.2.5: other libraries may have functions of any name.
func (im *Image) IsGlibc(name string) bool { return im.glibc[name] }

// glibcImports returns the names that are imported of a version of the GNU C library; none, where
// the tables of versions are broken. dynamic lacks the symbol table's empty first entry.
func (f elfFile) glibcImports(dynamic []symbolEntry) map[string]bool {
	needs, err := f.DynamicVersionNeeds()
	table := f.SectionByType(elf.SHT_GNU_VERSYM)
	if err != nil || table == nil {
		return nil
	}
	versions, err := f.plainSection(table)
	if err != nil {
		return nil
	}
	glibc := map[uint16]bool{}
	for _, library := range needs {
		for _, version := range library.Needs {
			glibc[version.Index] = strings.HasPrefix(version.Dep, "GLIBC_")
		}
	}
	const entryLen, hidden = 2, 1 << 15
	names := map[string]bool{}
	for i, symbol := range dynamic {
		at := (i + 1) * entryLen
		if at+entryLen > len(versions) {
			break
		}
		if !symbol.defined && glibc[binary.LittleEndian.Uint16(versions[at:])&^hidden] {
			names[symbol.name] = true
		}
	}
	return names
}
