// Man pages, in the format roff.

package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PageName returns the name of a command's man page, such as understudy-store-verify.
func PageName(c Command) string {
	return strings.TrimSuffix("understudy-"+strings.ReplaceAll(c.Path, " ", "-"), "-")
}

// roff escapes a text for roff, where a backslash and a period at the beginning of a line have special meanings.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// ManPage returns the man page of a command, for section 1. version is the version of the program.
func ManPage(c Command, version string) string {
	var b strings.Builder
	name := PageName(c)
	summary, more, _ := strings.Cut(c.Summary, "\n\n")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"understudy %s\" Understudy\n", roff(strings.ToUpper(name)), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(strings.TrimSuffix(summary, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(c.Usage))
	if detail := strings.TrimSpace(more + "\n\n" + c.Detail); detail != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", strings.ReplaceAll(roff(detail), "\n\n", "\n.PP\n"))
	}
	if len(c.Commands) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, child := range c.Commands {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(PageName(child)), roff(child.Summary))
		}
	}
	if len(c.Arguments) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for _, a := range c.Arguments {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(a.Name), roff(a.Help))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	group := ""
	for _, f := range c.Flags {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, ".SS %s\n", roff(strings.TrimSuffix(group, ":")))
		}
		flag := `\fB` + roff(f.Name) + `\fR`
		if f.Value != "" {
			flag += `=\fI` + roff(f.Value) + `\fR`
		}
		if f.Short != "" {
			flag = `\fB` + roff(f.Short) + `\fR, ` + flag
		}
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", flag, roff(f.Help))
	}
	b.WriteString(".SH EXIT STATUS\n0 after success, 1 after a failure, 2 after a mistake in the command line.\n")
	return b.String()
}

// WriteManPages writes the man pages of all commands to a folder, which it creates if needed. It returns the number of pages.
func WriteManPages(root Command, version, folder string) (n int, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	for _, c := range root.All() {
		if err := os.WriteFile(filepath.Join(folder, PageName(c)+".1"), []byte(ManPage(c, version)), 0o644); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
