#include "coordinator/cli/completion.h"

namespace proctor::cli {

const char* const kBashCompletion =
    R"bash(# bash completion for proctor; in ~/.bashrc:  source <(proctor completion bash)
_proctor() {
  local line=${COMP_LINE:0:COMP_POINT} candidate
  local word=${line##*[[:space:]]}
  COMPREPLY=()
  while IFS= read -r candidate; do
    COMPREPLY+=("$candidate")
  done < <("${COMP_WORDS[0]}" __complete "$line" 2>/dev/null)
  # readline replaces what stands behind the last colon only.
  if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
    local before=${word%"${word##*:}"} i
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$before"}; done
  fi
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _proctor proctor
)bash";

const char* const kZshCompletion = R"zsh(#compdef proctor
# zsh completion for proctor; in ~/.zshrc, after compinit:  source <(proctor completion zsh)
_proctor() {
  local -a all open closed
  all=("${(@f)$("${words[1]}" __complete "${LBUFFER}" 2>/dev/null)}")
  open=("${(@M)all:#*/}")
  closed=("${(@)all:#*/}")
  closed=("${(@)closed:#}")
  (( ${#open} )) && compadd -S '' -- "${open[@]}"
  (( ${#closed} )) && compadd -- "${closed[@]}"
}
compdef _proctor proctor
)zsh";

// The program is the one that was typed: `commandline -opc` has its words, as bash's COMP_WORDS.
const char* const kFishCompletion =
    R"fish(# fish completion for proctor; in ~/.config/fish/completions/proctor.fish
function __proctor_complete
    set -l typed (commandline -opc)
    $typed[1] __complete (commandline -cp | string collect) 2>/dev/null
end
complete -c proctor -f -a '(__proctor_complete)'
)fish";

}  // namespace proctor::cli
