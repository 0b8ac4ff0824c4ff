package pathcount_test

import (
	"log"
	"os"

	"wpptrace/internal/pathcount"
)

func ExampleResult_WriteText() {
	r := &pathcount.Result{
		Paths: []pathcount.PathCount{{Routine: "deflate", Path: 12, Count: 4711, Exact: true},
			{Routine: "deflate", Path: 3, Count: 0, Exact: true}},
		Others:  []pathcount.OtherCount{{Routine: "deflate", Count: 90, Exact: true}},
		Unknown: 1, Amid: 2,
	}
	if err := r.WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	//          COUNT  PATH
	//           4711  deflate#12
	//              0  deflate#3
	//             90  others of deflate
	// not found: 1 path, which this program does not have
	// interrupted: 2 times amid paths: counts may be off by as many in all
}
