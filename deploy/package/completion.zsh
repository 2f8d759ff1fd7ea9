#compdef muster
# The words are those of the program that is installed.
eval "$(muster completion zsh 2>/dev/null)"
_muster "$@"
