package io.idempotence.internal;

import java.util.Collection;
import java.util.Comparator;

/** A comparison of names, for messages about one that is unknown. */
public final class Spelling {
    private Spelling() {}

    /** Returns the known name that is most like this one. Of several it is the first. {@code known} must not be empty. */
    public static String nearest(String name, Collection<String> known) {
        return known.stream()
                .min(Comparator.comparingInt(each -> distance(each, name)))
                .orElseThrow();
    }

    /** Returns how many characters must be inserted, removed or replaced. */
    public static int distance(String one, String other) {
        int[] row = new int[other.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= one.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j < row.length; j++) {
                int replaced = diagonal + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[other.length()];
    }
}
