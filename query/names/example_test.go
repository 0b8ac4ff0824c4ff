package names_test

import (
	"fmt"

	"wpptrace/query/names"
	"wpptrace/query/querytest"
)

func ExampleNames_Select() {
	s := querytest.TracedLoop()
	n := names.Of(s)
	isNamed, err := n.Select("spin()")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range s.Symbols {
		fmt.Print(isNamed(&s.Symbols[i]), " ")
	}
	_, err = n.Select("spni")
	fmt.Println(err)
	// Output: true false false no routine spni, but spin
}

func ExampleSimilar() {
	known := []string{"Parser::string[abi:cxx11]", "Parser::number"}
	fmt.Println(names.Similar("Parser::string()", known, 3), names.Similar("nubmer", known, 3))
	// Output: [Parser::string[abi:cxx11]] [Parser::number]
}

func ExampleFit() {
	fmt.Println(names.Fit("std::vector<std::pair<int, int>>::push_back(\x1b[2J)", 40))
	// Output: std::vector<...>::push_back(?[2J)
}
