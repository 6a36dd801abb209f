package io.idempotence.cli;

import java.io.Console;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

/** The terminal on which a person confirms a change. */
interface Terminal {
    /** Whether there is a terminal. */
    boolean isThere();

    /** Asks a question. True only if the person types {@code y} or {@code yes}. */
    boolean agrees(String question);

    /** The terminal of this process, if it has one. */
    static Terminal system() {
        return new Terminal() {
            @Override
            public boolean isThere() {
                return isTerminal(System.console());
            }

            @Override
            @SuppressWarnings("SystemConsoleNull") // Before Java 22 it may be null.
            public boolean agrees(String question) {
                Console console = System.console();
                String line = console == null ? null : console.readLine("%s [y/N] ", question);
                return line != null && line.strip().matches("(?i)y|yes");
            }
        };
    }

    /**
     * Whether a console is a terminal. From Java 22 on a console may be none, and its {@code isTerminal} shows that. Before, a process
     * without a terminal has no console.
     */
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
