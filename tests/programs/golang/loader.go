// SPDX-License-Identifier: Apache-2.0

// Runs the plugin that modes.go makes. Usage: loader PLUGIN SECONDS.
package main

import (
	"os"
	"plugin"
)

func main() {
	p, err := plugin.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	run, err := p.Lookup("Run")
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(run.(func(string) string)(os.Args[2]))
}
