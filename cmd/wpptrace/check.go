package main

import (
	"github.com/spf13/cobra"

	"wpptrace/internal/checkreport"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

func checkCommand() *cobra.Command {
	var pid int
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [--json] [-p PID]",
		Short: "Check the kernel, the privileges and a process: each ok, or missing with the fix",
		Example: `  wpptrace check           can this machine trace at all?
  wpptrace check -p 4711   and process 4711?`,
		Long: "Nothing is attached. Without privileges, some requirements cannot be checked: " +
			"they are unknown then.\nThe exit status is 1 unless all is ok.",
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			r := checkreport.New(errorText)
			r.Add(requirement.OfMachine()...)
			r.Add(requirement.Requirement{Name: "limits", Find: func() (string, error) {
				return checkreport.Limits(uprobe.Detect()), nil
			}})
			if c.Flags().Changed("pid") {
				requirement.OfProcess(pid, func(q requirement.Requirement) { r.Add(q) })
				if p, err := target.Open(pid); err == nil {
					defer p.Close()
					r.Add(checkreport.OfProcess(p, defaultOverhead, oneLine)...)
				}
			}
			write := r.WriteText
			if asJSON {
				write = r.WriteJSON
			}
			if err := write(c.OutOrStdout()); err != nil {
				return err
			}
			if !r.OK {
				return exitStatus(exitError)
			}
			return nil
		},
	}
	c.Flags().IntVarP(&pid, "pid", "p", 0, "check process `PID` too")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
