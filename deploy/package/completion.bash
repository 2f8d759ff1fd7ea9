# Read by bash-completion at the first TAB behind 'muster'. The words are those of the program that is installed.
eval "$(muster completion bash 2>/dev/null)"
