package io.idempotence.spring.internal;

import java.util.Optional;
import org.springframework.core.convert.ConversionException;
import org.springframework.core.convert.support.DefaultConversionService;
import org.springframework.core.env.Environment;

/** Properties that switch a part on or off. They are read as Spring reads any other: {@code true}, {@code yes}, {@code on} and {@code 1}. */
public final class Switches {
    private Switches() {}

    /**
     * Whether a part is on.
     *
     * @param byDefault whether it is on without the property, or if that is empty
     * @throws SetUpException if the value cannot be read
     */
    public static boolean isOn(Environment environment, String property, boolean byDefault) {
        String text = environment.getProperty(property);
        if (text == null || text.isBlank()) {
            return byDefault;
        }
        return value(text)
                .orElseThrow(() -> SetUpException.ofProperty(
                        property, text, "it must be true or false", "Set " + property + " to true or false.", null));
    }

    /** The value of a text; empty if it cannot be read. */
    public static Optional<Boolean> value(String text) {
        try {
            return Optional.ofNullable(
                    DefaultConversionService.getSharedInstance().convert(text.strip(), Boolean.class));
        } catch (ConversionException e) {
            return Optional.empty();
        }
    }
}
