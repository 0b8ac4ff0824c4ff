package truth

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An image is the text of the main executable, or of a library, as the file has it, and where the
// process mapped it.
type image struct {
	segments []segment
	// the executable sections, which hold code alone; none in a file without section headers
	sections []segment
	phdr     uint64    // link-time address of the program headers
	bias     uint64    // run-time minus link-time addresses
	mapped   []segment // as the file has them, where some are clipped
	space    uint64    // what is added to a link-time address in a trace
	file     fileID
}

// A segment is one executable PT_LOAD, or a section of one.
type segment struct {
	lo, hi uint64 // link-time addresses
	code   []byte
	offset uint64 // in the file
}

// A fileID distinguishes files.
type fileID struct{ device, inode uint64 }

// An opcode is what the stepper must know about an instruction.
type opcode uint8

const (
	ordinary  opcode = iota
	repString        // single-stepping stops after each iteration
	syscallOp        // the kernel may restart it
	int3             // raises SIGTRAP of its own
	cpuid            // where a hypervisor executes it, the step may end behind the next one
)

// cpuidLength is its length, bytes.
const cpuidLength = 2

// openImage reads the executable segments of an x86-64 ELF file.
func openImage(path string) (*image, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open executable %s: %w", path, err)
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 || f.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("open executable %s: not an x86-64 ELF file", path)
	}
	header, file, err := identify(path)
	if err != nil {
		return nil, err
	}
	img := &image{file: file}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Off <= header && header < p.Off+p.Filesz {
			img.phdr = p.Vaddr + header - p.Off
		}
		if p.Flags&elf.PF_X == 0 {
			continue
		}
		code := make([]byte, p.Filesz)
		if _, err := p.ReadAt(code, 0); err != nil {
			return nil, fmt.Errorf("read text of %s: %w", path, err)
		}
		img.segments = append(img.segments,
			segment{lo: p.Vaddr, hi: p.Vaddr + p.Filesz, code: code, offset: p.Off})
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS {
			continue
		}
		code, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("read section %s of %s: %w", s.Name, path, err)
		}
		img.sections = append(img.sections, segment{lo: s.Addr, hi: s.Addr + s.Size, code: code})
	}
	if len(img.segments) == 0 {
		return nil, fmt.Errorf("open executable %s: no executable segment", path)
	}
	return img, nil
}

// identify gives e_phoff, which debug/elf does not give, and the file's identity.
func identify(path string) (phoff uint64, file fileID, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, file, fmt.Errorf("open executable: %w", err)
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], 0x20); err != nil {
		return 0, file, fmt.Errorf("read ELF header of %s: %w", path, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return 0, file, fmt.Errorf("identify %s: %w", path, err)
	}
	return binary.LittleEndian.Uint64(b[:]), fileID{stat.Dev, stat.Ino}, nil
}

// locate finds the bias from the program headers' address, which the kernel puts in the process's
// auxiliary vector.
func (img *image) locate(pid int) error {
	aux, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return fmt.Errorf("read auxiliary vector: %w", err)
	}
	const atPhdr = 3
	for ; len(aux) >= 16; aux = aux[16:] {
		if binary.LittleEndian.Uint64(aux) == atPhdr {
			img.bias = binary.LittleEndian.Uint64(aux[8:]) - img.phdr
			return nil
		}
	}
	return fmt.Errorf("auxiliary vector of process %d has no AT_PHDR", pid)
}

// restrict has the image be no more than the traced ones of some routines, by their addresses in a
// trace: all else runs as libraries do. nil: all of it stays.
func (img *image) restrict(to Routines) {
	if to == nil {
		return
	}
	clip := func(list []segment) (clipped []segment) {
		for _, s := range list {
			for _, r := range to {
				if r.Start < img.space {
					continue
				}
				lo, hi := max(s.lo, r.Start-img.space), min(s.hi, r.End-img.space)
				if r.Traced && lo < hi {
					clipped = append(clipped, segment{lo: lo, hi: hi,
						code: s.code[lo-s.lo : hi-s.lo], offset: s.offset + lo - s.lo})
				}
			}
		}
		return clipped
	}
	img.segments, img.sections = clip(img.segments), clip(img.sections)
}

// place is what a trace calls a run-time address.
func (img *image) place(pc uint64) uint64 { return pc - img.bias + img.space }

// contains says whether a run-time address is in the image's text.
func (img *image) contains(pc uint64) bool {
	pc -= img.bias
	for i := range img.segments {
		if s := &img.segments[i]; s.lo <= pc && pc < s.hi {
			return true
		}
	}
	return false
}

// opcodeAt classifies the instruction at a run-time address inside the text.
func (img *image) opcodeAt(pc uint64) opcode {
	pc -= img.bias
	for i := range img.segments {
		if s := &img.segments[i]; s.lo <= pc && pc < s.hi {
			return classify(s.code[pc-s.lo:])
		}
	}
	return ordinary
}

func classify(code []byte) opcode {
	rep := false
	for i, b := range code {
		switch {
		case b == 0xf2 || b == 0xf3:
			rep = true
		case b == 0x66 || b == 0x67 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 ||
			b == 0x64 || b == 0x65 || b&0xf0 == 0x40:
		case b >= 0xa4 && b <= 0xa7 || b >= 0xaa && b <= 0xaf || b >= 0x6c && b <= 0x6f:
			if rep {
				return repString
			}
			return ordinary
		case b == 0xcc:
			return int3
		case b == 0x0f && i+1 < len(code) && code[i+1] == 0x05:
			return syscallOp
		case b == 0x0f && i+1 < len(code) && code[i+1] == 0xa2:
			return cpuid
		default:
			return ordinary
		}
	}
	return ordinary
}
