# bash completion for thalweg: eval "$(thalweg completion bash)"
_thalweg() {
	local IFS=$'\n' line directive=:done
	COMPREPLY=()
	while read -r line; do
		case $line in
		:*) directive=$line ;;
		?*) COMPREPLY+=("$(printf %q "${line%%$'\t'*}")") ;;
		esac
	done < <("${COMP_WORDS[0]}" __complete bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	case $directive in
	:files) compopt -o default 2>/dev/null ;;
	:nospace)
		compopt -o nospace 2>/dev/null
		COMPREPLY=("${COMPREPLY[@]//\\=/=}")
		;;
	esac
}
complete -F _thalweg thalweg
