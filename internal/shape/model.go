package shape

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/query/bounds"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A Question is what is asked about the bounds of snapshots.
type Question struct {
	Degree int // of overlapping paths, or Usual
	// a recording of the same program, which the truth is of; nil: it is of the snapshot, if that
	// is a recording
	Against *wpp.Snapshot
	Files   []string // copies of those that were recorded, where these are not any more
	Limit   report.BoundsLimit
}

// Usual is the degree that a profile was made with; of a recording, a third of the greatest useful
// one.
const Usual = -2

// Bounds answers a question of a recording, or of a profile with overlapping paths. It fails where
// it is not known which path followed which, and where files are named that nothing is read of.
// Cost: that of Of and bounds.Follow, for each recording.
func Bounds(s *wpp.Snapshot, q *Question) (*report.BoundsJSON, error) {
	m, leftOut, err := model(s, q.Files)
	if err != nil {
		return nil, err
	}
	recording := m.Profile.Degree == bounds.Whole
	var elsewhere *uint64
	switch {
	case q.Against == nil && recording:
		m.TakeTruth(m)
	case q.Against == nil && len(q.Files) > 0:
		return nil, errors.New("it is a profile, which needs no file of the program: " +
			"--binary goes with a recording, or with --against")
	case q.Against != nil:
		if !isOfImages(q.Against, s) {
			return nil, fmt.Errorf("the other recording is of another program, or another build: "+
				"--against takes one of %s", names.Printable(s.Images[0].Name))
		}
		truth, _, err := model(q.Against, q.Files)
		if err != nil {
			return nil, fmt.Errorf("the other recording: %w", err)
		}
		if truth.Profile.Degree != bounds.Whole {
			return nil, errors.New("the other one is a profile, which does not have the truth: " +
				"--against takes a recording")
		}
		n := m.TakeTruth(truth)
		elsewhere = &n
	}
	degree := q.Degree
	switch {
	case degree != Usual:
	case recording:
		degree = m.Degree() / 3
	default:
		degree = m.Profile.Degree
	}
	if degree > m.Profile.Degree {
		return nil, fmt.Errorf("degree %d: the profile has overlapping paths of degree %d: "+
			"--overlap %[2]d is the most", degree, m.Profile.Degree)
	}
	return report.NewBounds(m, degree, leftOut, elsewhere, q.Limit), nil
}

// isOfImages reports whether one of the images that a snapshot is of is the same build as one of
// another snapshot, or one of them is of none.
func isOfImages(s, other *wpp.Snapshot) bool {
	if len(s.Images) == 0 || len(other.Images) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Images, func(x wpp.Image) bool {
		return slices.ContainsFunc(other.Images, func(y wpp.Image) bool {
			return bytes.Equal(x.BuildID, y.BuildID) && (x.BuildID != nil || x.Name == y.Name)
		})
	})
}

func model(s *wpp.Snapshot, files []string) (*bounds.Model, map[string]int, error) {
	p, err := overlapped.Of(s)
	if err != nil {
		return nil, nil, err
	}
	var leftOut map[string]int
	if p == nil && pathprofile.IsProfile(s) {
		return nil, nil, errors.New("it counts paths, and not how they go on: " +
			"wpptrace profile --overlap K counts both, and wpptrace -p records it")
	}
	if p == nil {
		shapes, err := Of(s, files)
		if err != nil {
			return nil, nil, err
		}
		if err := shapes.anyKnown(s); err != nil {
			return nil, nil, err
		}
		if p, err = bounds.Follow(s, shapes.Of); err != nil {
			return nil, nil, err
		}
		leftOut = shapes.LeftOut
	}
	m, err := bounds.New(s, p)
	return m, leftOut, err
}
