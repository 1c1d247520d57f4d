# Sets CANN's environment in the shell that reads this: find_cann FILE, or find_cann '' to look for it.
# What is looked for, in order: the toolkit's set_env.sh, the older setenv.bash, and the one cann-*/set_env.sh there is.
find_cann() {
    local root=${ASCEND_ROOT:-/usr/local/Ascend} found
    if [ -n "$1" ]; then
        found=$1
    elif [ -f "$root/ascend-toolkit/set_env.sh" ]; then
        found=$root/ascend-toolkit/set_env.sh
    elif [ -f "$root/ascend-toolkit/latest/bin/setenv.bash" ]; then
        found=$root/ascend-toolkit/latest/bin/setenv.bash
    else
        local all=("$root"/cann-*/set_env.sh)
        if [ ${#all[@]} -gt 1 ]; then
            echo "several versions of CANN are there (${all[*]}): name one with --builder- or --runtime-ascend-env-script" >&2
            return 1
        fi
        found=${all[0]}
    fi
    # Reading it is the test: permission bits say nothing under some sandboxes. CANN's own scripts use variables that are not set.
    set +u
    # shellcheck disable=SC1090
    if ! . "$found"; then
        echo "CANN's environment cannot be read from $found" >&2
        return 1
    fi
    set -u
    CANN_ENV=$found
}
