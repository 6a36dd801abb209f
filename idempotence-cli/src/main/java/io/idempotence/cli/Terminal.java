package io.idempotence.cli;

import java.io.Console;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

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
                return isTerminal(System.console());
            }

            @Override
            public boolean agrees(String question) {
                Console console = System.console();
                String answer = console == null ? null : console.readLine("%s [y/N] ", question);
                return answer != null && answer.strip().matches("(?i)y|yes");
            }
        };
    }

    /** From Java 22 on there may be a console without a terminal; it says so itself. Before, there is none. */
    private static boolean isTerminal(@Nullable Console console) {
        if (console == null) {
            return false;
        }
        try {
            Method isTerminal = Console.class.getMethod("isTerminal");
            return Boolean.TRUE.equals(isTerminal.invoke(console));
        } catch (NoSuchMethodException beforeJava22) {
            return true;
        } catch (ReflectiveOperationException e) {
            return false;
        }
    }
}
