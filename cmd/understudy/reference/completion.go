// Completion: the candidates for a word of a command line, and the scripts by which shells ask for them.

package reference

import (
	"slices"
	"strings"
)

// Shells are the names of the shells for which there is a completion script.
const Shells = "bash,zsh,fish"

// Scripts are the completion scripts by the name of the shell. They run `understudy completion SHELL -- WORDS`.
var Scripts = map[string]string{
	"bash": `# bash completion for understudy. To use it: source <(understudy completion bash)
_understudy() {
  local line cur=${COMP_WORDS[COMP_CWORD]}
  [[ $cur == = ]] && cur=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :FILE) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
      :DIR) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(understudy completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _understudy understudy
`,
	"zsh": `#compdef understudy
# zsh completion for understudy. To use it: source <(understudy completion zsh)
_understudy() {
  local -a found
  local line
  [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
  for line in "${(@f)$(understudy completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      (:FILE) _files; return ;;
      (:DIR) _files -/; return ;;
      (?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe understudy found
}
if [[ ${funcstack[1]} == _understudy ]]; then _understudy "$@"; else compdef _understudy understudy; fi
`,
	"fish": `# fish completion for understudy. To use it: understudy completion fish | source
function __understudy
    for line in (understudy completion fish -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
        switch $line
            case :FILE
                __fish_complete_path (commandline -ct)
            case :DIR
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c understudy -f -a '(__understudy)'
`,
}

// Complete returns the candidates for the last of words, as lines for a completion script. A line has the candidate,
// a tab, and its description. The line :FILE or :DIR tells the shell to offer names of files or folders.
func Complete(root Command, shell string, words []string) []string {
	if len(words) == 0 || words[len(words)-1] == "=" {
		words = append(slices.Clone(words), "")
	}
	// bash passes the equals sign of a flag as a word of its own
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "=" })
	last, before := words[len(words)-1], words[:len(words)-1]
	command := root
	for i, word := range before {
		if next := slices.IndexFunc(command.Commands, func(c Command) bool { return c.Name() == word }); next >= 0 && word != "help" {
			command, before = command.Commands[next], before[i:]
		}
	}
	prefix, flag := "", before
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(last, "--") {
		// fish replaces the flag together with its value, and other shells only the value
		if flag, last = []string{name}, value; shell == "fish" {
			prefix = name + "="
		}
	}
	var lines []string
	add := func(word, help string) {
		if strings.HasPrefix(word, last) {
			lines = append(lines, prefix+word+"\t"+help)
		}
	}
	for _, f := range command.Flags {
		if f.Value == "" || len(flag) == 0 || flag[len(flag)-1] != f.Name && (f.Short == "" || flag[len(flag)-1] != f.Short) {
			continue
		}
		for _, value := range f.Values {
			add(value, f.Help)
		}
		if f.Value == "FILE" || f.Value == "DIR" {
			lines = append(lines, ":"+f.Value)
		}
		return lines
	}
	if strings.HasPrefix(last, "-") {
		for _, f := range command.Flags {
			add(f.Name, f.Help)
		}
		return lines
	}
	for _, c := range command.Commands {
		add(c.Name(), c.Summary)
	}
	for _, a := range command.Arguments {
		for _, value := range a.Values {
			add(value, a.Help)
		}
		if a.IsFile {
			lines = append(lines, ":FILE")
		}
	}
	return lines
}
