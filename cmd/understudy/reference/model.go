// Model: the commands with their arguments and flags, taken from the parser.

// Package reference describes the command line for shells (completion), for man, and for the documentation. All
// descriptions are made from the model of the parser, so they always match the real flags.
package reference

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Command is a command, or a group of commands such as "store".
type Command struct {
	Path      string // the words of the command, such as "store verify"; "" for the program itself
	Usage     string // the text after "Usage:" on the help page
	Summary   string
	Detail    string // further paragraphs of the help page, separated by empty lines; "" if there are none
	Commands  []Command
	Arguments []Argument
	Flags     []Flag
}

// Argument is a positional argument.
type Argument struct {
	Name   string // the argument's name with brackets, such as "[<file>]"
	Help   string
	Values []string // the permitted values; nil if any value is
	IsFile bool
}

// Flag is a flag of a command.
type Flag struct {
	Name   string // the flag's long name with its dashes
	Short  string // the flag's short name with its dash, or ""
	Value  string // the name that stands for the value in the help; "" if the flag takes no value
	Help   string
	Group  string   // the heading above the flag in the help; "" if there is none
	Values []string // the permitted values; nil if any value is
}

// Describe returns the description of the program with all of its commands.
func Describe(app *kong.Application) Command { return describe(app.Node) }

// describe returns the description of a command and of the commands below it.
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

// values returns the permitted values of an argument or flag. It returns nil if any value is permitted.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// All returns the command itself and all commands below it.
func (c Command) All() []Command {
	all := []Command{c}
	for _, child := range c.Commands {
		all = append(all, child.All()...)
	}
	return all
}

// Name returns the last word of the command.
func (c Command) Name() string { return c.Path[strings.LastIndexByte(c.Path, ' ')+1:] }
