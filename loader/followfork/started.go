package followfork

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"wpptrace/bpf"
)

// parse reads what the BPF program sends.
func parse(b []byte) (Started, error) {
	const size, name = 28, 12
	if len(b) < size {
		return Started{}, fmt.Errorf("read of new processes: %d bytes, not %d", len(b), size)
	}
	text, _, _ := bytes.Cut(b[name:size], []byte{0})
	quoted := strconv.Quote(string(text)) // a process may call itself anything
	n := Started{PID: int(binary.LittleEndian.Uint32(b)), Name: quoted[1 : len(quoted)-1]}
	switch event := bpf.FamilyFamilyEvent(binary.LittleEndian.Uint32(b[4:])); event {
	case bpf.FamilyFamilyEventFAMILY_BORN:
	case bpf.FamilyFamilyEventFAMILY_EXEC:
		n.Exec = true
	default:
		return Started{}, fmt.Errorf("read of process %d: unknown event %d", n.PID, event)
	}
	switch obstacle := bpf.FamilyObstacle(binary.LittleEndian.Uint32(b[8:])); obstacle {
	case bpf.FamilyObstacleOBSTACLE_NONE:
	case bpf.FamilyObstacleOBSTACLE_DEBUGGER:
		n.Obstacle = ErrDebugger
	case bpf.FamilyObstacleOBSTACLE_JOB_CONTROL:
		n.Obstacle = ErrJobControl
	default:
		return Started{}, fmt.Errorf("read of process %d: unknown obstacle %d", n.PID, obstacle)
	}
	return n, nil
}
