package top

import (
	"encoding/gob"
	"os"
)

func showScreen(o *Opening, updates *gob.Decoder) error { return printLines(os.Stdout, o, updates) }
