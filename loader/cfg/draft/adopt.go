package draft

import "slices"

// isOrphan says whether instruction i is in a piece that nothing but a table can lead to: the cold
// parts of cases.
func (r *Program) isOrphan(i int) bool {
	p := &r.Code.Pieces[r.Code.PieceOf[i]]
	if !r.IsKnown(p.Routine) {
		if len(r.Survey.PiecesOf(p.Routine)) == 1 && r.File.IsTables(p) {
			r.Survey.Want(int(r.Code.PieceOf[i]))
		}
		return false
	}
	return len(r.Routines[p.Routine].Pieces) == 1 && r.File.IsTables(p)
}

// adoptTargets makes the orphans that the tables of a routine lead to parts of it.
func (r *Program) adoptTargets(d *Routine) {
	for _, t := range d.Tables {
		for _, to := range t.Targets {
			orphan := r.Routines[r.Code.Pieces[r.Code.PieceOf[to]].Routine]
			if orphan == d {
				continue
			}
			d.Pieces = append(d.Pieces, orphan.Pieces...)
			for _, i := range orphan.Pieces {
				r.Code.Pieces[i].Routine = d.ID
			}
			orphan.Pieces, orphan.Entry, orphan.Adopter = nil, -1, d
		}
	}
	slices.Sort(d.Pieces)
}
