package io.idempotence.examples.operator;

import io.idempotence.examples.console.Consoles;
import java.io.Console;

/** Where a person can be asked. */
interface Terminal {
    /** Whether there is a person. */
    boolean isThere();

    /** Asks. True only for a plain yes. */
    boolean agrees(String question);

    /** The terminal this process was started on, if it was. */
    static Terminal system() {
        return new Terminal() {
            @Override
            public boolean isThere() {
                return Consoles.isTerminal();
            }

            @Override
            public boolean agrees(String question) {
                Console console = System.console();
                String answer = console == null ? null : console.readLine("%s [y/N] ", question);
                return answer != null && answer.strip().matches("(?i)y|yes");
            }
        };
    }
}
