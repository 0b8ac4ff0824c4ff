package main

import "github.com/spf13/cobra"

func planCommand() *cobra.Command  { return &cobra.Command{Use: "plan"} }
func checkCommand() *cobra.Command { return &cobra.Command{Use: "check"} }
