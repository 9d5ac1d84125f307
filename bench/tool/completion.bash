# SPDX-License-Identifier: Apache-2.0
# completion.bash - completion of ebb's commands and options for bash.

_ebb() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} options='' i
    local commands='record replay report advise budget'
    COMPREPLY=()
    if [ "$word" = = ]; then # bash makes three words of --option=value
        word=''
    elif [ "$before" = = ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [ "$COMP_CWORD" = 1 ]; then
        options="$commands help --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    if [ "$command" = record ]; then # behind the command's own words files are completed
        for ((i = 2; i < COMP_CWORD; i++)); do
            case ${COMP_WORDS[i]} in
                -o | --output | --every | --function | --within | --limit | --recover)
                    i=$((i + 1))
                    [ "${COMP_WORDS[i]}" != = ] || i=$((i + 1)) ;;
                --)
                    [ "$COMP_CWORD" != $((i + 1)) ] ||
                        mapfile -t COMPREPLY < <(compgen -c -- "$word")
                    return ;;
                -*) ;;
                *) return ;;
            esac
        done
    fi
    case $before in
        --allocators)
            mapfile -t COMPREPLY < <(compgen -P "${word%"${word##*,}"}" -W 'ebb ebb-unplanned glibc
                glibc-tuned jemalloc jemalloc-tuned mimalloc tcmalloc' -- "${word##*,}")
            return ;;
        -o | --output | --recover | --html) return ;;
        --every | --function | --within | --limit | --rounds | --bytes | --allocations | \
            --promoted | --reserved | --site) COMPREPLY=(); return ;;
    esac
    case $command in
        record) options='--output --every --function --within --limit --sites --tensor
            --recover --keep --quiet --help --' ;;
        replay) options='--allocators --rounds --quick --help' ;;
        report) options='--html --allocators --rounds --quick --no-replay --help' ;;
        advise) options='--search --output --help' ;;
        budget) options='--bytes --allocations --promoted --reserved --site --help' ;;
        help) [ "$COMP_CWORD" = 2 ] &&
            mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
            return ;;
    esac
    if [ "${word:0:1}" = - ]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    fi
}

complete -o default -F _ebb ebb
