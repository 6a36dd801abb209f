package io.idempotence.examples.console;

import java.io.Console;
import java.lang.reflect.Method;

/** The console of this process. */
public final class Consoles {
    private Consoles() {}

    /** Whether a person is at it. From Java 22 on there may be a console without a terminal; it says so itself. Before, there is none. */
    @SuppressWarnings("SystemConsoleNull") // What it is from Java 22 on is asked below.
    public static boolean isTerminal() {
        Console console = System.console();
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
