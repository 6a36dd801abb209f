package io.idempotence.it.chaos;

/** One line of the ledger: an execution of a call. */
record Effect(String name, String call) {
    String line() {
        return name + ' ' + call + '\n';
    }

    static Effect of(String line) {
        int space = line.indexOf(' ');
        return new Effect(line.substring(0, space), line.substring(space + 1));
    }
}
