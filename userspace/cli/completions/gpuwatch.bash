# SPDX-License-Identifier: Apache-2.0
# Made by userspace/cli/completions/generate from cli/flags.def: do not edit.
_gpuwatch() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev= command= word i files=0 words=
  COMPREPLY=()
  # --flag=value comes as three words.
  if [[ $cur == = ]]; then cur=; prev=${COMP_WORDS[COMP_CWORD - 1]}
  elif ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}
  elif ((COMP_CWORD > 0)); then prev=${COMP_WORDS[COMP_CWORD - 1]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    # What follows belongs to another program.
    if [[ $word == -- ]]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else compopt -o default; fi
      return
    fi
    [[ -z $command && $word != -* ]] && command=$word
  done
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W 'tail top record decode hash probe status listen attach detach doctor cgroup baseline --help --version' -- "$cur"))
    return
  fi
  case $command$prev in
    'tail--replay') files=1 ;;
    'tail--filter' | 'tail-f') return ;;
    'tail--node') words='ctl gpu uvm uvm-tools modeset caps imex nvswitch nvlink other' ;;
    'tail--pid' | 'tail-p') return ;;
    'tail--cgroup') files=1 ;;
    'tail--container') return ;;
    'tail--pod') return ;;
    'tail--user' | 'tail-u') return ;;
    'tail--gpu') return ;;
    'tail--private-key') files=1 ;;
    'tail--class') words='open ioctl mmap release task cgroup state image' ;;
    'tail--ring-bytes') return ;;
    'tail--baseline') files=1 ;;
    'tail--policy') files=1 ;;
    'tail--sm') return ;;
    'tail--unverified-after') return ;;
    'tail--count' | 'tail-n') return ;;
    'tail--duration') return ;;
    'tail--by') words='process container' ;;
    'top--count' | 'top-n') return ;;
    'top--delay' | 'top-d') return ;;
    'top--replay') files=1 ;;
    'top--at') words='end peak' ;;
    'top--sort') words='since contexts channels memory peak verdict calls gpu findings denied last user' ;;
    'top--filter' | 'top-f') return ;;
    'top--user' | 'top-u') return ;;
    'top--socket') files=1 ;;
    'top--baseline') files=1 ;;
    'top--policy') files=1 ;;
    'top--sm') return ;;
    'top--private-key') files=1 ;;
    'top--ring-bytes') return ;;
    'record--output' | 'record-o') files=1 ;;
    'record--duration') return ;;
    'record--flight-recorder') return ;;
    'record--label') return ;;
    'record--images-max') return ;;
    'record--node') words='ctl gpu uvm uvm-tools modeset caps imex nvswitch nvlink other' ;;
    'record--pid' | 'record-p') return ;;
    'record--cgroup') files=1 ;;
    'record--class') words='open ioctl mmap release task cgroup state image' ;;
    'record--ring-bytes') return ;;
    'decode--at') words='peak end' ;;
    'decode--images') files=1 ;;
    'decode--baseline') files=1 ;;
    'decode--policy') files=1 ;;
    'decode--sm') return ;;
    'decode--filter' | 'decode-f') return ;;
    'decode--driver') return ;;
    'decode--device') return ;;
    'decode--request') return ;;
    'decode--arg') return ;;
    'decode--out') return ;;
    'decode--params') return ;;
    'decode--params-out') return ;;
    'decode--ret') return ;;
    'decode--by') words='process container' ;;
    'decode--timeline') files=1 ;;
    'decode--since') return ;;
    'decode--until') return ;;
    'hash--sm') return ;;
    'probe--image') files=1 ;;
    'probe--kernel') return ;;
    'probe--pid') return ;;
    'probe--baseline') files=1 ;;
    'probe--records') files=1 ;;
    'probe--gpu') return ;;
    'probe--every') return ;;
    'probe--times') return ;;
    'probe--timeout') return ;;
    'status--socket') files=1 ;;
    'status--baseline') files=1 ;;
    'listen--group' | 'listen-g') words='events verdicts' ;;
    'listen--count' | 'listen-n') return ;;
    'listen--duration') return ;;
    'listen--buffer-bytes') return ;;
    'detach--timeout') return ;;
    'baseline--output' | 'baseline-o') files=1 ;;
    'baseline--label') return ;;
    'baseline--sm') return ;;
    'baseline--db') files=1 ;;
    'baseline--policy') files=1 ;;
    'baseline--process') return ;;
    'baseline--duration') return ;;
    'baseline--ring-bytes') return ;;
    'baseline--key') files=1 ;;
    *)
      if [[ $cur == -* ]]; then
        case $command in
          tail) words='--replay --raw --json --detail --filter --node --pid --cgroup --container --pod --user --gpu --names --no-names --private --private-key --class --ring-bytes --baseline --policy --sm --unverified-after --explain --scan --no-images --count --duration --no-follow --summary --by --no-header --stats --utc --help' ;;
          top) words='--once --batch --count --delay --json --replay --at --flat --sort --filter --user --own --socket --baseline --policy --sm --no-names --no-gpu-time --private --private-key --ring-bytes --utc --help' ;;
          record) words='--output --force --duration --flight-recorder --label --no-images --images-max --node --pid --cgroup --class --ring-bytes --help' ;;
          decode) words='--json --tree --at --fields --images --modules --baseline --policy --sm --explain --filter --utc --driver --device --request --arg --out --params --params-out --ret --summary --by --timeline --since --until --help' ;;
          hash) words='--sm --all --json --no-cache --help' ;;
          probe) words='--image --kernel --pid --baseline --records --outside --no-ptx --selftest --gpu --every --times --timeout --json --help' ;;
          status) words='--json --socket --baseline --help' ;;
          listen) words='--group --json --count --duration --heartbeats --buffer-bytes --utc --help' ;;
          attach) words='--help' ;;
          detach) words='--timeout --help' ;;
          doctor) words='--json --help' ;;
          cgroup) words='--json --help' ;;
          baseline) words='--output --label --deny --resident --sm --db --policy --process --explain --duration --ring-bytes --key --json --help' ;;
        esac
      else
        case $command in
          baseline) [[ $prev == baseline ]] && words='build learn show diff merge export import sign verify check' || files=1 ;;
          cgroup | decode | hash) files=1 ;;
        esac
      fi
      ;;
  esac
  if ((files)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}
complete -F _gpuwatch gpuwatch
