# fish completion for thalweg: thalweg completion fish > ~/.config/fish/completions/thalweg.fish
function __thalweg_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete fish -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':*'
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c thalweg -f -a '(__thalweg_complete)'
