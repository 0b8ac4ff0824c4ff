package p

type Bare struct {
	N int `json:"n"`
}

type Number int

type Whole struct {
	A Number  `json:"a"` // a number
	B []*Bare `json:"b"` // objects
	c int
}
