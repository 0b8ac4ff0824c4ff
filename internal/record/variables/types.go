package variables

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	located "wpptrace/compress/wpp/variables"
	described "wpptrace/loader/variables"
)

// addTypes adds the types of an image to the table, each once however often its debug information
// describes it, as it does in each file of its source, and returns their indices there.
func (t *Table) addTypes(list []described.Type) []int {
	own := make([]located.Type, len(list))
	for i := range list {
		own[i] = typeOf(&list[i])
	}
	class, count := classes(own)
	first := len(t.found.Types)
	t.found.Types = append(t.found.Types, make([]located.Type, count)...)
	index := make([]int, len(own))
	for i, c := range class {
		index[i] = first + c
	}
	for i := range own {
		x := own[i]
		if x.Of >= 0 {
			x.Of = index[x.Of]
		}
		for k := range x.Members {
			x.Members[k].Type = index[x.Members[k].Type]
		}
		t.found.Types[index[i]] = x
	}
	return index
}

// classes numbers types so that two have a number if what they say, and all that they lead to, is
// the same: it begins with what each says by itself, and tells apart what leads to types that have
// been told apart, until there are no more.
func classes(list []located.Type) (class []int, count int) {
	seed := maphash.MakeSeed()
	own, next := make([]uint64, len(list)), make([]uint64, len(list))
	for i := range list {
		own[i] = says(seed, &list[i])
	}
	class, count = number(own)
	for range mostRounds {
		for i := range list {
			next[i] = leadsTo(seed, &list[i], own[i], class)
		}
		now, n := number(next)
		if n == count {
			return now, n
		}
		class, count = now, n
	}
	for i := range class { // of a chain that is longer than that of any program
		class[i] = i
	}
	return class, len(class)
}

const mostRounds = 1000

func number(keys []uint64) (class []int, count int) {
	known := map[uint64]int{}
	class = make([]int, len(keys))
	for i, key := range keys {
		c, ok := known[key]
		if !ok {
			c = len(known)
			known[key] = c
		}
		class[i] = c
	}
	return class, len(known)
}

// says is a hash of what a type says by itself.
func says(seed maphash.Seed, t *located.Type) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	word := func(list ...int64) {
		for _, n := range list {
			maphash.WriteComparable(&h, n)
		}
	}
	word(int64(t.Kind), t.Size, t.Count, int64(len(t.Members)))
	maphash.WriteComparable(&h, t.Name)
	for _, m := range t.Members {
		maphash.WriteComparable(&h, m.Name)
		word(m.Offset, int64(m.FirstBit), int64(m.Bits))
		maphash.WriteComparable(&h, m.IsBase)
	}
	for _, x := range t.Names {
		maphash.WriteComparable(&h, x)
	}
	return h.Sum64()
}

// leadsTo is a hash of that and of the classes of the types that it refers to.
func leadsTo(seed maphash.Seed, t *located.Type, own uint64, class []int) uint64 {
	data := binary.LittleEndian.AppendUint64(nil, own)
	add := func(of int) {
		n := uint64(0)
		if of >= 0 {
			n = uint64(class[of]) + 1
		}
		data = binary.LittleEndian.AppendUint64(data, n)
	}
	add(t.Of)
	for _, m := range t.Members {
		add(m.Type)
	}
	return maphash.Bytes(seed, data)
}

// most is what sizes, offsets and counts are at most, as sections have them.
const most = 1 << 40

// kinds are those of sections.
var kinds = map[described.Kind]located.TypeKind{
	described.Unsigned: located.Unsigned, described.Signed: located.Signed,
	described.Float: located.Float, described.Bool: located.Bool, described.Char: located.Char,
	described.SignedChar: located.SignedChar, described.Pointer: located.Pointer,
	described.Struct: located.Struct, described.Array: located.Array,
}

// typeOf is a type of an image, with its indices; Other, if what it claims cannot be.
func typeOf(from *described.Type) located.Type {
	t := located.Type{Kind: kinds[from.Kind], Name: strings.ToValidUTF8(from.Name, "?"),
		Size: from.Size, Of: from.Of, Count: from.Count}
	if from.Size < 0 || from.Size > most || from.Count >= most {
		return located.Type{Of: located.NoType, Count: -1}
	}
	for _, m := range from.Members {
		if m.Offset >= 0 && m.Offset <= most {
			t.Members = append(t.Members, located.Member{Name: strings.ToValidUTF8(m.Name, "?"),
				Type: m.Type, Offset: m.Offset, FirstBit: m.FirstBit, Bits: m.Bits,
				IsBase: m.IsBase})
		}
	}
	for _, x := range from.Names {
		t.Names = append(t.Names,
			located.Enumerator{Name: strings.ToValidUTF8(x.Name, "?"), Value: x.Value})
	}
	return t
}
