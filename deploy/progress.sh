#!/usr/bin/env bash
# Runs a command and shows where it is: what runs, n of m, the time left. Its whole output goes to a log file.
#   deploy/progress.sh packages|configure|build LOG COMMAND...      exit code: that of the command
# On a terminal one line rewrites itself; elsewhere there is a plain line at least every 10 s. It needs bash and nothing else.
# PROGRESS_STEP ("step 2 of 3: ") goes in front of each line.

# What the lines of a command's output say. They set `what` (runs now), `done` and `of`.
progress_read_packages() {
  local word
  read -ra word <<<"$1"
  case $1 in
    *' newly installed, '*) of=0; for ((i = 0; i < ${#word[@]}; i++)); do
        case ${word[i]} in upgraded,|newly) of=$((of + 3 * word[i - 1])) ;; esac  # fetched, unpacked and set up
      done; done=0 ;;
    Get:*|Hit:*)
      if [ "$of" -gt 0 ]; then what="fetching ${word[4]-}"; done=$((done + 1)); else what="reading ${word[1]} ${word[2]}"; fi ;;
    'Unpacking '*) what="unpacking ${word[1]%%:*}"; done=$((done + 1)) ;;
    'Setting up '*) what="setting up ${word[2]%%:*}"; done=$((done + 1)) ;;
    'Processing triggers '*) what="triggers of ${word[3]}" ;;
  esac
}

progress_read_configure() {
  case $1 in '-- '*) what=${1#-- }; done=$((done + 1)) ;; esac
}

progress_read_build() {
  if [[ $1 =~ ^\[([0-9]+)/([0-9]+)\ [^]]*\]\ (.*) ]]; then
    done=${BASH_REMATCH[1]} of=${BASH_REMATCH[2]} what=${BASH_REMATCH[3]}
  fi
}

# The sources below this folder that a compiler reads at this moment.
progress_compiled_now() {
  local file words word last found=
  for file in /proc/[0-9]*/cmdline; do
    { mapfile -d '' words <"$file"; } 2>/dev/null || continue
    last=
    for word in "${words[@]}"; do
      if [ "$last" = -c ] && [[ $word == "$PWD"/*.c* && $word != *' '* && " $found " != *" ${word#"$PWD"/} "* ]]; then
        found+="${found:+ }${word#"$PWD"/}"
      fi
      last=$word
    done
  done
  echo "$found"
}

progress_time() {
  if [ "$1" -ge 120 ]; then echo "$(((${1} + 30) / 60)) min"; else echo "$1 s"; fi
}

progress_text() {
  local seconds=$((EPOCHSECONDS - begin)) count='' left='' now=$what compiled
  [ "$of" -eq 0 ] || count="[$done of $of] "
  if [ "$of" -gt 0 ] && [ "$done" -gt 0 ] && [ "$seconds" -ge 5 ]; then
    left=", about $(progress_time $((seconds * (of - done) / done))) left"
  fi
  if [ "$kind" = build ] && [ -z "$terminal" ]; then
    compiled=$(progress_compiled_now)
    [ -z "$compiled" ] || now="compiling $compiled"
  fi
  echo "${PROGRESS_STEP-}$count${now:-starting}, $(progress_time "$seconds")$left"
}

progress_show() {
  local text
  if [ -n "$terminal" ]; then
    text=$(progress_text)
    printf '\r\033[K%s' "${text:0:${COLUMNS:-$(tput cols 2>/dev/null || echo 80)}-1}"
  elif [ $((EPOCHSECONDS - last)) -ge 8 ]; then
    progress_text
    last=$EPOCHSECONDS
  fi
}

progress_follow() {
  local kind=$1 line part='' what='' done=0 of=0 begin=$EPOCHSECONDS last=0 terminal='' status i
  [ ! -t 1 ] || terminal=yes
  while :; do
    if IFS= read -r -t 2 line; then
      "progress_read_$kind" "$part$line"
      part=
      # A terminal is not written to more often than one can read.
      if [ -n "$terminal" ] && read -r -t 0; then continue; fi
    else
      status=$?
      part+=$line
      [ "$status" -gt 128 ] || break
    fi
    progress_show
  done
  [ -z "$terminal" ] || printf '\r\033[K'
}

# progress KIND LOG COMMAND...
progress() {
  local - kind=$1 log=$2
  shift 2
  set +e
  NINJA_STATUS='[%f/%t %es] ' "$@" 2>&1 </dev/null | tee "$log" | progress_follow "$kind"
  return "${PIPESTATUS[0]}"
}

# progress_build LOG COMMAND...: with the errors in the end, if there are any.
progress_build() {
  progress build "$@" || { grep -E 'error|FAILED' -A 5 "$1" | head -n 60; return 1; }
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  case ${1-} in
    packages|configure) progress "$@" ;;
    build) shift; progress_build "$@" ;;
    *) sed -n 2,5p "$0"; exit 2 ;;
  esac
fi
