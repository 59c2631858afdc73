// Model: the commands with their arguments and flags, read from the parser's model.

// Package reference describes the command line in other forms than its help: shell completions, man pages and the page of
// the documentation. All of them come from the model of the parser, so they cannot differ from the flags.
package reference

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Command is a command, or a group of commands such as store.
type Command struct {
	Path      string // without the program, such as "store verify"; "" for the program itself
	Usage     string // the line behind "Usage:"
	Summary   string
	Detail    string // paragraphs with an empty line between two, or ""
	Commands  []Command
	Arguments []Argument
	Flags     []Flag
}

// Argument is a positional argument.
type Argument struct {
	Name   string // the argument's name with brackets, such as "[<file>]"
	Help   string
	Values []string // the values it may have, or nil
	IsFile bool
}

// Flag is a flag of a command.
type Flag struct {
	Name   string // the flag's long name with its dashes
	Short  string // the flag's short name with its dash, or ""
	Value  string // the placeholder of the value; "" for a flag without a value
	Help   string
	Group  string   // the title of its group, or ""
	Values []string // the values it may have, or nil
}

// Describe returns the program with all its commands.
func Describe(app *kong.Application) Command { return describe(app.Node) }

// describe returns a node with the nodes below it.
func describe(node *kong.Node) Command {
	c := Command{Path: node.Path(), Usage: node.FullPath() + " <command> [flags]", Summary: node.Help, Detail: node.Detail}
	if node.Leaf() {
		c.Usage = strings.TrimSuffix(node.FullPath(), node.Path()) + node.Summary()
	}
	if node.Type == kong.ApplicationNode {
		c.Path = ""
	}
	for _, child := range node.Children {
		if !child.Hidden {
			c.Commands = append(c.Commands, describe(child))
		}
	}
	for _, arg := range node.Positional {
		isFile := strings.Contains(arg.Name, "file") || arg.Name == "spec"
		c.Arguments = append(c.Arguments, Argument{arg.Summary(), arg.Help, values(arg), isFile})
	}
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		f := Flag{Name: "--" + flag.Name, Help: flag.Help, Values: values(flag.Value)}
		if flag.Short != 0 {
			f.Short = "-" + string(flag.Short)
		}
		if !flag.IsBool() {
			f.Value = strings.TrimSuffix(flag.FormatPlaceHolder(), ",...")
		}
		if flag.Group != nil {
			f.Group = flag.Group.Title
		}
		c.Flags = append(c.Flags, f)
	}
	return c
}

// values returns the values of an enumeration, or nil.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// All returns the command and all commands below it, in their order.
func (c Command) All() []Command {
	all := []Command{c}
	for _, child := range c.Commands {
		all = append(all, child.All()...)
	}
	return all
}

// Name returns the last word of the path.
func (c Command) Name() string { return c.Path[strings.LastIndexByte(c.Path, ' ')+1:] }
